"""Which driver, CUDA, framework and Python go together on a GPU, what to do where they don't, and what an error message means."""
