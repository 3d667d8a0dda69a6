"""The version of Skiff, and that of its binary interface: equal ones are compatible."""

VERSION = "0.2.0"
ABI_VERSION = "0.2"
