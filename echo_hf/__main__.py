"""`python -m echo_hf` is `echo-hf`."""

from echo_hf.cli import main

if __name__ == "__main__":
    main()
