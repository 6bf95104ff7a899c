"""Adapters to other people's trainers: one module a framework, which is imported only by that module."""
