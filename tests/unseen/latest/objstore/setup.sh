mkdir -p incoming objects
