# shellcheck shell=bash
# Query engines that read shipped sessions, and the tests of them (tests/lake). The engines are fetched
# once, checked, and kept in the cache. An engine that cannot be fetched is skipped, with the reason.

lake=$(cache_dir)/lake
superset=$root/.deps/superset
# Reasons and logs.
lake_notes=$root/.deps/lake
# Seconds for one engine of `./do test`. Scripts by name have no limit.
lake_patience=300
lake_limit=()
lake_fetching=
iceberg_jar=iceberg-spark-runtime-$iceberg_spark-$iceberg_version.jar

# java_home OLDEST [NEWEST]: a JDK of such a version.
java_home() {
	local home version
	for home in "${JAVA_HOME:-/none}" /usr/lib/jvm/*; do
		[ -x "$home/bin/javac" ] || continue
		version=$("$home/bin/java" -version 2>&1 | first_version)
		version=${version%%.*}
		if [ "${version:-0}" -ge "$1" ] && [ "$version" -le "${2:-$version}" ]; then
			say "$home"
			return
		fi
	done
	say "there is no JDK of version $1 ${2:+to }${2:-or newer}" >&2
	return 1
}
old_java() { java_home 17 21; }
new_java() { java_home 24; }

# Trino needs a newer JDK than Debian 12 has.
setup_new_java() {
	if new_java >/dev/null 2>&1 || [ -z "$(candidate openjdk-25-jdk-headless)" ]; then return; fi
	(apt_install openjdk-25-jdk-headless) || true
}

# in_scratch COMMAND...: with a directory as its last argument, which is removed afterwards.
in_scratch() {
	local scratch status=0
	scratch=$(mktemp -d "$lake/scratch.XXXXXX") || return
	"$@" "$scratch" || status=$?
	rm -rf -- "$scratch"
	return "$status"
}

# maven ARGUMENTS...: with a repository of its own, so that no second copy of large files remains.
maven() {
	have mvn || { say "there is no mvn to fetch it with" && return 1; }
	in_scratch maven_with "$@"
}
maven_with() { mvn -q -B "${@:1:$#-1}" "-Dmaven.repo.local=${*: -1}"; }

# fetch_artifact ARTIFACT FILE SHA256 DIR: an artifact of Maven, as DIR/FILE.
fetch_artifact() {
	maven org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy -Dmdep.useBaseVersion=true \
		"-Dartifact=$1" "-DoutputDirectory=$4" || return
	check_sha256 "$4/$2" "$3" || { say "$2 is not the file that scripts/versions.sh pins" && return 1; }
}

# pip_install ENVIRONMENT READY FILE OPTIONS...: installs the packages of a file, once.
pip_install() {
	local ready=$1/$2 file=$3 key
	key=$(sha256sum <"$file")
	[ "$(cat -- "$ready" 2>/dev/null)" != "$key" ] || return 0
	"$1/bin/pip" install -q --no-cache-dir --require-hashes "${@:4}" -r "$file" || return
	printf '%s\n' "$key" >"$ready"
}

# pip_environment ENVIRONMENT FILE OPTIONS...: a virtual environment with the packages of a file.
pip_environment() {
	if [ "$(cat -- "$1/packages" 2>/dev/null)" != "$(sha256sum <"$2")" ]; then
		rm -rf -- "$1"
		/usr/bin/python3 -m venv "$1" || return
	fi
	pip_install "$1" packages "$2" --only-binary=:all: "${@:3}"
}

fetch_python() { pip_environment "$lake/python" tests/lake/requirements.txt; }

# Superset needs other versions of packages than the engines do.
fetch_superset() {
	have chromium || have chromium-browser || { say "there is no Chromium to open it in" && return 1; }
	pip_environment "$superset" tests/lake/superset.txt --no-deps || return
	pip_install "$superset" source tests/lake/superset_source.txt --no-build-isolation --no-deps
}

# The jar for Iceberg tables is a part of it.
fetch_spark() {
	old_java || return
	pip_install "$lake/python" spark tests/lake/spark.txt --no-build-isolation || return
	[ -f "$lake/$iceberg_jar" ] || in_scratch fetch_iceberg_jar
}

fetch_iceberg_jar() {
	fetch_artifact "org.apache.iceberg:iceberg-spark-runtime-$iceberg_spark:$iceberg_version" "$iceberg_jar" "$iceberg_sha256" "$1" &&
		mv -- "$1/$iceberg_jar" "$lake/"
}

fetch_trino() {
	new_java || return
	[ -f "$lake/trino-$trino_version/complete" ] || in_scratch unpack_trino
}

# Only two of its plugins are kept. They share files with others, so that all must be unpacked.
unpack_trino() {
	local name=trino-server-$trino_version dir=$lake/trino-$trino_version
	fetch_artifact "io.trino:trino-server:$trino_version:tar.gz" "$name.tar.gz" "$trino_sha256" "$1" || return
	tar -xzf "$1/$name.tar.gz" -C "$1" --no-same-owner || return
	find "$1/$name/plugin" -mindepth 1 -maxdepth 1 ! -name hive ! -name iceberg -exec rm -rf {} + || return
	: >"$1/$name/complete"
	rm -rf -- "$dir"
	mv -T -- "$1/$name" "$dir"
}

# The directory that examples/opensearch/run.sh makes, too.
fetch_opensearch() {
	local dir
	dir=$(cache_dir)/opensearch
	old_java || return
	if [ ! -f "$dir/complete" ]; then
		maven -f "$root/examples/opensearch/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$dir" || return
		: >"$dir/complete"
	fi
	[ "$(cd -- "$dir" && sha256sum -- *.jar | sha256sum | cut -d ' ' -f 1)" = "$opensearch_sha256" ] ||
		{ say "the jars in $dir are not the files that scripts/versions.sh pins: remove it" && return 1; }
}

fetch_azurite() {
	have npm || { say "there is no npm to fetch it with" && return 1; }
	[ -x "$lake/azurite-$azurite_version/node_modules/.bin/azurite-blob" ] ||
		npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$lake/azurite-$azurite_version" \
			"azurite@$azurite_version"
}

fetch_gcs() {
	have go || { say "there is no Go to build it with" && return 1; }
	[ -x "$lake/gcs-$fake_gcs_version/fake-gcs-server" ] ||
		GOBIN=$lake/gcs-$fake_gcs_version go install "github.com/fsouza/fake-gcs-server@v$fake_gcs_version"
}

# fetch_part NAME: leaves the reason when the part is not there afterwards.
fetch_part() {
	local log=$lake_notes/$1.log missing=$lake_notes/$1.missing reason
	"fetch_$1" >"$log" 2>&1 </dev/null && return
	# Maven's first error says what is wrong, pip's last one.
	sed -i 's/\x1b\[[0-9;]*m//g' "$log"
	reason=$(grep -m 1 '^\[ERROR\]' "$log" || grep . "$log" | tail -n 1) || true
	printf '%s\n' "${reason:-it could not be fetched}" >"$missing"
}

# fetch_engines PART...: packages of Python, and the others at the same time.
fetch_engines() {
	local part others
	mkdir -p "$lake" "$lake_notes"
	rm -f -- "$lake_notes"/*.missing
	for part in "$@"; do
		case $part in
		python | spark | superset) ;;
		*) fetch_part "$part" ;;
		esac
	done &
	others=$!
	for part in "$@"; do
		case $part in
		python | spark | superset) fetch_part "$part" ;;
		esac
	done
	wait "$others"
}

# begin_fetching_engines: builds and other tests run meanwhile.
begin_fetching_engines() {
	setup_new_java
	fetch_engines python spark opensearch trino &
	lake_fetching=$!
}

# parts_of NAME: the parts without which an engine or a script cannot run.
parts_of() {
	case $1 in
	spark | stores | iceberg | scale) say python spark ;;
	trino | opensearch) say python "$1" ;;
	superset) say superset ;;
	*) say python ;;
	esac
}

# why_skipped NAME: the reason; status 1 when it can run.
why_skipped() {
	local part
	if ! is_root && ! sudo -n true 2>/dev/null; then
		say "recording needs root, or sudo without a password"
		return
	fi
	for part in $(parts_of "$1"); do
		if [ -f "$lake_notes/$part.missing" ]; then
			say "$part: $(<"$lake_notes/$part.missing")"
			return
		fi
	done
	return 1
}

skipped_in_lake() {
	say "SKIPPED: sessions in a lake: $1: $2"
	tests_skipped=$((tests_skipped + 1))
}

# check_in_lake WHAT NAME COMMAND...: one check, or one skipped test.
check_in_lake() {
	local reason
	if reason=$(why_skipped "$2"); then
		skipped_in_lake "$1" "$reason"
	else
		check "sessions in a lake: $1" "${@:3}"
	fi
}

# in_lake SCRIPT ARGUMENTS...: in a shell of its own, whose environment names the engines.
in_lake() (
	runner=() python=$lake/python
	[ "$1" != superset.py ] || python=$superset
	is_root || runner=(scripts/as-root)
	export FATHOM=$root/$fathom PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
	export SUPERSET=$superset NODE=$node
	export TRINO_HOME=$lake/trino-$trino_version OPENSEARCH_JARS ICEBERG_SPARK_JAR JAVA_HOME TRINO_JAVA_HOME
	OPENSEARCH_JARS=$(cache_dir)/opensearch
	ICEBERG_SPARK_JAR=$lake/$iceberg_jar
	JAVA_HOME=$(old_java) || true
	TRINO_JAVA_HOME=$(new_java) || true
	PATH=$lake/azurite-$azurite_version/node_modules/.bin:$lake/gcs-$fake_gcs_version:$PATH \
		"${lake_limit[@]}" "${runner[@]}" "$python/bin/python" "tests/lake/$1" "${@:2}"
)

# in_lake_quietly NAME WORK: a part of smallest.py.
in_lake_quietly() {
	local lake_limit=(timeout -k 60 "$lake_patience")
	logged "sessions in a lake: $1" in_lake smallest.py "$2" "$1"
}

# test_lake: the smallest form of each engine.
test_lake() {
	local work name what engines='duckdb DuckDB
		clickhouse ClickHouse
		spark Spark
		pyiceberg PyIceberg
		trino Trino
		opensearch OpenSearch'
	if [ -n "$lake_fetching" ]; then
		logged "waiting for the query engines" tail --pid="$lake_fetching" -f /dev/null
		wait "$lake_fetching" || true
	fi
	work=$(mktemp -d /var/tmp/fathom-lake.XXXXXX)
	check_in_lake "recording and shipping" sessions in_lake_quietly sessions "$work"
	if [ -f "$work/expected.json" ] || why_skipped sessions >/dev/null; then
		while read -r name what; do
			check_in_lake "$what" "$name" in_lake_quietly "$name" "$work"
		done <<<"$engines"
	fi
	rm -rf -- "$work" 2>/dev/null || as_root rm -rf -- "$work"
}

# lake_tests [NAME...]: whole scripts alone; all but the one that takes hours.
lake_tests() {
	local name parts=()
	[ $# -gt 0 ] || set -- stores iceberg trino opensearch
	for name in "$@"; do
		case $name in
		smallest) parts+=(python spark trino opensearch) ;;
		stores) parts+=(azurite gcs) ;;
		iceberg) parts+=(gcs) ;;
		superset) parts+=(trino) ;;
		trino | opensearch | scale) ;;
		*) die 2 "./do test lake: unknown name: $name" "one of: stores, iceberg, trino, opensearch, superset, scale, smallest" ;;
		esac
		# shellcheck disable=SC2207 # words
		parts+=($(parts_of "$name"))
	done
	mapfile -t parts < <(printf '%s\n' "${parts[@]}" | sort -u)
	setup_new_java
	logged "fetching query engines" fetch_engines "${parts[@]}"
	build_fathom
	for name in azurite gcs; do
		[ ! -f "$lake_notes/$name.missing" ] || skipped_in_lake "$name" "$(<"$lake_notes/$name.missing")"
	done
	for name in "$@"; do
		if [ "$name" = smallest ]; then
			test_lake
			continue
		fi
		[ "$name" != scale ] || cargo build --release --locked --workspace --bin fathom-scale
		check_in_lake "$name" "$name" in_lake "$name.py"
	done
	conclude
}
