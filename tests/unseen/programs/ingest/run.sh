exec ./ingest
