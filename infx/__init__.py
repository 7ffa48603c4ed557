"""A benchmark-recipe harness and config repository for LLM inference engines."""
