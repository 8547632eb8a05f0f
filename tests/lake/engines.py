"""Engines that run in this process. Each makes views of a lake with the statements of docs/how-to/ship-sessions.md, or of Iceberg
tables by their newest files of metadata as docs/how-to/query-with-iceberg.md says, and then answers queries."""

import json
import os
import re
from pathlib import Path

from lake import PAGE, check, compare, each, statements


class DuckDB:
    def __init__(self):
        import duckdb

        self.db = duckdb.connect()

    def load(self, *extensions):
        """Extensions, from their Python packages."""
        for name in extensions:
            package = __import__(f"duckdb_extension_{name}")
            file = next(Path(package.__file__).parent.rglob("*.duckdb_extension"))
            self.db.execute(f"LOAD '{file}'")

    def lake(self, prefix):
        self.db.execute(statements("DuckDB")[0].replace("PREFIX", prefix).replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))

    def store(self, prefix):
        """A lake in the S3 server of the environment."""
        self.load("httpfs")
        self.db.execute(f"CREATE SECRET (TYPE s3, KEY_ID 'key', SECRET 'secret', REGION 'us-east-1', URL_STYLE 'path', USE_SSL false, "
                        f"ENDPOINT '{os.environ['AWS_ENDPOINT_URL'].removeprefix('http://')}')")
        self.lake(prefix)

    def iceberg(self, tables):
        self.load("avro", "iceberg")
        for name, metadata in tables.items():
            self.db.execute(f"CREATE OR REPLACE VIEW {name} AS FROM iceberg_scan('{metadata}')")

    def rows(self, sql):
        return self.db.execute(sql).fetchall()

    def close(self):
        self.db.close()


class ClickHouse:
    def __init__(self):
        from chdb import session

        self.server = session.Session()

    def database(self, settings):
        for statement in ["DROP DATABASE IF EXISTS lake", "CREATE DATABASE lake", "USE lake"]:
            self.server.query(statement)
        for setting in re.findall(rf"SET ((?:{settings}) = \d)", PAGE.read_text()):
            self.server.query(f"SET {setting}")

    def lake(self, prefix):
        self.database(r"\w+")
        for statement in each(statements("ClickHouse")[0].replace("PREFIX", prefix)):
            self.server.query(statement)

    def store(self, prefix):
        self.database(r"\w+")
        address = prefix.replace("s3://", f"{os.environ['AWS_ENDPOINT_URL']}/")
        for statement in each(statements("ClickHouse")[0]):
            self.server.query(re.sub(r"file\('PREFIX(.*?)'", rf"s3('{address}\1', 'key', 'secret'", statement))

    def iceberg(self, tables):
        self.database("join_use_nulls|prefer_column_name_to_alias")
        for name, metadata in tables.items():
            directory, _, file = metadata.partition("/metadata/")
            # It reads files below the current directory only; the lake and the warehouse are in one directory.
            os.chdir(Path(directory).parents[2])
            self.server.query(f"CREATE VIEW {name} AS SELECT * FROM icebergLocal('{directory}', Parquet, "
                              f"SETTINGS iceberg_metadata_file_path = 'metadata/{file}')")

    def rows(self, sql):
        text = str(self.server.query(sql, "JSONCompact"))
        return [[int(v) if isinstance(v, str) and re.fullmatch(r"-?\d+", v) else v for v in row] for row in json.loads(text)["data"]]

    def close(self):
        self.server.close()
        os.chdir("/")


class Spark:
    """Iceberg tables need the jar iceberg-spark-runtime in ICEBERG_SPARK_JAR."""

    def __init__(self):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[1]")
        for name, value in {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
            "spark.jars": os.environ.get("ICEBERG_SPARK_JAR", ""),
        }.items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")

    def lake(self, prefix):
        for statement in each(statements("Spark")[0].replace("PREFIX", prefix)):
            self.spark.sql(statement)

    def iceberg(self, tables):
        for name, metadata in tables.items():
            self.spark.read.format("iceberg").load(metadata).createOrReplaceTempView(name)

    def rows(self, sql):
        return [list(row) for row in self.spark.sql(sql).collect()]

    def close(self):
        self.spark.stop()


ENGINES = [DuckDB, ClickHouse, Spark]


def reads(engine, expected, **views):
    """Compares the answers of an engine with the rows of `fathom query`. `views` are its methods that make views, with what they read."""
    opened = engine()
    for kind, place in views.items():
        getattr(opened, kind)(place)
        compare(f"{engine.__name__}, {kind}", opened.rows, expected)
        if engine is DuckDB:
            slowest("DuckDB", opened.rows)
    opened.close()


def slowest(engine, run):
    """The page's query of the slowest calls, of all days."""
    sql = statements(engine)[1].strip().replace("WHERE date = '2026-01-31' ", "")
    check(f"{engine}, slowest calls", [[len(run(sql))]], [[10]])
