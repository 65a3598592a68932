"""What LocalStack needs to serve Almanac on a machine without Docker.

Functions of the runtimes ``provided.*`` run as processes of this machine that speak the Lambda Runtime API; mail goes to
an SMTP server; tables are kept by a DynamoDB Local that somebody else started. ``python -m process_executor`` checks the
versions that this was written for and starts LocalStack with the plugins of ``plugin.py``.
"""
