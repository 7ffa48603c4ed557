"""Places: where engines start. Here is this machine; Slurm is a node that its scheduler gives."""
