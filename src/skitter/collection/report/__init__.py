"""What a collection holds and lacks, for whoever keeps it."""
