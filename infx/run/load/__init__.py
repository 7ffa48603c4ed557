"""The load client: keeps an engine busy and writes down, per request, what came back and when."""
