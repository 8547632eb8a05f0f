# shellcheck shell=bash
# The Helm chart, and the same as one plain manifest.

chart=deploy/helm/fathom
manifest=deploy/kubernetes/fathom.yaml
helm_version=3.17.3

# use_helm: finds helm, or builds it where Go is new enough.
use_helm() {
	PATH=$root/.deps/bin:$PATH
	have helm && return
	have go || return
	logged "building helm" env "GOBIN=$root/.deps/bin" go install "helm.sh/helm/v3/cmd/helm@v$helm_version" && have helm
}

# make_chart OUTPUT: the chart as helm installs it, without helm: helm package writes the current time.
make_chart() {
	[ "$(grep -cE "^(version|appVersion): $version\$" "$chart/Chart.yaml")" -eq 2 ] ||
		die 1 "$chart/Chart.yaml has another version than Cargo.toml"
	tar -C "${chart%/*}" --sort=name --mtime="@$release_time" --owner=0 --group=0 --numeric-owner \
		--mode=u=rwX,go=rX -cf - "${chart##*/}" | gzip -n -9 >"$1/fathom-$version-chart.tgz"
	cp -- "$manifest" "$1/fathom-$version-kubernetes.yaml"
}

render_chart() { helm template fathom "$chart" --namespace fathom --kube-version 1.30.0 "$@"; }

# check_chart: by helm, and each result against the schemas of Kubernetes.
check_chart() {
	local work
	if ! use_helm; then
		note "the chart is not rendered: helm is not installed, and there is no Go to build it"
	else
		work=$(mktemp -d dist/.chart.XXXXXX)
		helm lint --quiet --strict "$chart" || die 1 "helm does not accept $chart"
		if ! render_chart >"$work/usual.yaml" ||
			! render_chart --set privileged=true --set state.hostPath=/var/lib/fathom --set priorityClassName=high \
				--set 'pullSecrets[0].name=registry' --set claims=true >"$work/other.yaml"; then
			die 1 "helm does not render $chart"
		fi
		[ -z "${FATHOM_BLESS:-}" ] || cp -- "$work/usual.yaml" "$manifest"
		cmp "$work/usual.yaml" "$manifest" ||
			die 1 "$manifest is not what $chart renders" "FATHOM_BLESS=1 ./do dist writes it again"
		check_manifests "$work/usual.yaml" "$work/other.yaml"
		rm -rf -- "$work"
	fi
	check_manifests "$manifest"
	note "Kubernetes' schemas accept the manifests"
}

check_manifests() {
	local python=.deps/python/bin/python3
	if ! "$python" -c 'import kubernetes_validate' 2>/dev/null; then
		note "manifests are not validated: ./do setup test installs the validator"
		return
	fi
	"$python" -m kubernetes_validate --strict "$@" || die 1 "Kubernetes does not accept these manifests"
}
