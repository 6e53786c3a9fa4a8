"""`python -m perflint`."""

from perflint.cli import main

if __name__ == "__main__":
    main()
