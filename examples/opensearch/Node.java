import java.util.concurrent.TimeUnit;

import org.codelibs.opensearch.runner.OpenSearchRunner;

/** A node of OpenSearch for some seconds: Node DIRECTORY SECONDS HEALTH-CHECK-INTERVAL. */
public class Node {
    public static void main(final String[] args) throws Exception {
        final OpenSearchRunner runner = new OpenSearchRunner();
        runner.onBuild((number, settings) -> {
            settings.put("monitor.fs.health.refresh_interval", args[2]);
            settings.put("discovery.type", "single-node");
            settings.putList("network.host", "127.0.0.1");
            settings.put("cluster.routing.allocation.disk.threshold_enabled", false);
        }).build(OpenSearchRunner.newConfigs().basePath(args[0]).numOfNode(1).clusterName("fathom").useLogger());
        runner.ensureYellow();
        runner.createIndex("documents", (org.opensearch.common.settings.Settings) null);
        for (int i = 0; i < 200; i++) {
            runner.insert("documents", Integer.toString(i), "{\"number\": " + i + "}");
        }
        TimeUnit.SECONDS.sleep(Long.parseLong(args[1]));
        runner.close();
        System.exit(0);
    }
}
