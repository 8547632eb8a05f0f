exec indexer --config sphinx.conf mails
