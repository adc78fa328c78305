"""Adapters for programs: Headwater's catalogs behind the interfaces of other libraries, one package for each library.

They translate and hold no rules. Nothing below them knows that they exist.
"""
