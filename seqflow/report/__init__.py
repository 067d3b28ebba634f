"""What a source holds, or what a job makes of it, as one HTML page that needs nothing else."""
