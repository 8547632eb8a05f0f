import org.codelibs.opensearch.runner.OpenSearchRunner;

/** A node of OpenSearch until standard input ends: OpenSearchNode DIRECTORY HTTP-PORT TRANSPORT-PORT. */
public class OpenSearchNode {
    public static void main(final String[] args) throws Exception {
        final OpenSearchRunner runner = new OpenSearchRunner();
        runner.onBuild((number, settings) -> {
            settings.put("discovery.type", "single-node");
            settings.putList("network.host", "127.0.0.1");
            settings.put("http.port", args[1]);
            settings.put("transport.port", args[2]);
            settings.put("cluster.routing.allocation.disk.threshold_enabled", false);
        }).build(OpenSearchRunner.newConfigs().basePath(args[0]).numOfNode(1).clusterName("fathom").useLogger());
        runner.ensureYellow();
        System.out.println("started");
        while (System.in.read() >= 0) {
        }
        runner.close();
        System.exit(0);
    }
}
