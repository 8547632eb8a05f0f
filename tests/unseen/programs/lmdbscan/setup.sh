./scan fill
