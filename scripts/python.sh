# shellcheck shell=bash
# Python packages for the tests that read exports and sessions with them, in an
# environment of their own. Without them those tests are skipped.

python_env=.deps/python
python_wanted=(tests/python/requirements.txt tests/python/validators.txt tests/python/tracers.txt)

# setup_python: installs what is pinned, once; never an error.
setup_python() {
	local key
	key=$(cat "${python_wanted[@]}" | sha256sum)
	[ "$(cat "$python_env/ready" 2>/dev/null)" != "$key" ] || return 0
	if ! /usr/bin/python3 -c 'import ensurepip, venv' 2>/dev/null; then
		note "Python has no venv: tests with Python packages will be skipped"
		return 0
	fi
	rm -rf "$python_env"
	if logged "making a Python environment" /usr/bin/python3 -m venv "$python_env" &&
		logged "installing Python packages" "$python_env/bin/pip" install -q \
			--require-hashes --only-binary=:all: "${python_wanted[@]/#/--requirement=}"; then
		printf '%s\n' "$key" >"$python_env/ready"
	else
		note "not available here, done without: Python packages for some tests"
		rm -rf "$python_env"
	fi
}
