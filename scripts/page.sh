# shellcheck shell=bash
# The page: the packages it is built with, building it, and its tests.

page_ready=web/node_modules/.fathom-ready

page_packages_there() {
	[ "$(cat "$page_ready" 2>/dev/null)" = "$(page_packages_key)" ]
}

page_packages_key() { cat web/package.json web/package-lock.json | sha256sum; }

# setup_page: exactly what the lock file names, by hash; no package's script runs.
setup_page() {
	! page_packages_there || return 0
	(cd web && logged "installing the packages that build the page" npm ci --ignore-scripts) ||
		die 1 "could not install the packages that build the page" "check the network and run ./do again"
	page_packages_key >"$page_ready"
}

# page_tool NAME ARGUMENTS...: a program of those packages, run by the Node.js
# that was chosen, in web/.
page_tool() {
	local name=$1
	shift
	(cd web && "$node" "node_modules/.bin/$name" "$@")
}

# build_page: web/dist, when its sources have changed since it was built.
build_page() {
	local key
	key=$(page_sources | xargs -0 sha256sum | sha256sum)
	if [ -f web/dist/index.html ] && [ "$(cat .deps/page-built 2>/dev/null)" = "$key" ]; then
		return
	fi
	rm -f .deps/page-built
	logged "building the page" page_tool vite build
	printf '%s\n' "$key" >.deps/page-built
}

page_sources() {
	find web -maxdepth 1 -type f -print0 | sort -z
	find web/src web/public -type f -print0 2>/dev/null | sort -z
}

# Counted like the tests of Rust sources. Those in a browser need the built
# program, Chromium and root, and say so when they cannot run.
run_page_tests() {
	page_tests "tests of the page"
	page_tests "tests of the page in a browser" --config vitest.page.config.ts
}

# page_tests WHAT OPTIONS...
page_tests() {
	local what=$1 report names start=$SECONDS
	shift
	report=$(mktemp "$root/.deps/page-tests.XXXXXX")
	note "$what"
	page_tool vitest run "$@" --reporter=default --reporter=json --outputFile.json="$report" ||
		note "FAILED: $what"
	count_page_tests "$report"
	mapfile -t names < <(failed_page_tests "$report")
	failures+=("${names[@]}")
	took "$start" "$what"
	rm -f -- "$report"
}

# count_page_tests REPORT: adds the figures of one JSON report.
count_page_tests() {
	local passed failed skipped
	read -r passed failed skipped < <("$node" -e '
		let r = {};
		try { r = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8")); } catch {}
		const n = (k) => Number(r[k]) || 0;
		// A file that does not load has no tests that could fail.
		const failed = n("numFailedTests") || (r.success === true ? 0 : 1);
		console.log(n("numPassedTests"), failed, n("numPendingTests") + n("numTodoTests"));
	' "$1")
	tests_passed=$((tests_passed + passed))
	tests_failed=$((tests_failed + failed))
	tests_skipped=$((tests_skipped + skipped))
}

# failed_page_tests REPORT: their names, a line each; files that did not load have none.
failed_page_tests() {
	"$node" -e '
		let r = {};
		try { r = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8")); } catch {}
		for (const file of r.testResults ?? [])
			if (file.status === "failed" && !file.assertionResults.length) console.log(file.name);
			else for (const t of file.assertionResults) if (t.status === "failed") console.log(t.fullName);
	' "$1"
}
