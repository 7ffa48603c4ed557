"""What this machine's load client can bear: a null server, a ladder of streams, and what the ceiling means."""
