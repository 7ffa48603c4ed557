"""Judgements between results: verdicts, noise floors, frontiers, coverage and claims."""
