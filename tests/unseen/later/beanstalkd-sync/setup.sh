mkdir binlog
