import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ConsistencyLevel;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.marshal.ListType;
import org.apache.cassandra.db.marshal.TimestampType;
import org.apache.cassandra.db.marshal.UTF8Type;
import org.apache.cassandra.db.marshal.UUIDType;
import org.apache.cassandra.tools.NodeProbe;
import org.apache.cassandra.transport.ProtocolVersion;
import org.apache.cassandra.transport.SimpleClient;
import org.apache.cassandra.transport.messages.ResultMessage;

/**
 * A client of Cassandra: Documents PORT fill COUNT JMX-PORT | index | read COUNT OF.
 * The documents are those of the paper: a number, a time, two texts, up to four tags, 3.5 KB.
 */
public class Documents {
    /** Connections that write at once. */
    private static final int WRITERS = 4;
    private static final String KEYSPACE = "CREATE KEYSPACE store WITH replication = "
        + "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    /** Without compactions, each flush makes an SSTable that stays. */
    private static final String TABLE = "CREATE TABLE store.documents (id uuid PRIMARY KEY, number int, "
        + "at timestamp, text1 text, text2 text, tags list<text>) "
        + "WITH compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}";
    private static final String INSERT = "INSERT INTO store.documents (id, number, at, text1, text2, tags) "
        + "VALUES (?, ?, ?, ?, ?, ?)";

    private final int port;

    private Documents(final int port) {
        this.port = port;
    }

    public static void main(final String[] args) throws Exception {
        DatabaseDescriptor.clientInitialization();
        final Documents documents = new Documents(Integer.parseInt(args[0]));
        switch (args[1]) {
            case "fill":
                documents.fill(Integer.parseInt(args[2]), Integer.parseInt(args[3]));
                break;
            case "index":
                documents.execute("DROP INDEX IF EXISTS store.numbers");
                documents.execute("CREATE INDEX numbers ON store.documents (number)");
                while (!documents.isBuilt()) {
                    Thread.sleep(100);
                }
                break;
            case "read":
                documents.read(Integer.parseInt(args[2]), Integer.parseInt(args[3]));
                break;
            default:
                throw new IllegalArgumentException(args[1]);
        }
        System.exit(0);
    }

    private SimpleClient connect() throws Exception {
        final SimpleClient client = SimpleClient.builder("127.0.0.1", port).protocolVersion(ProtocolVersion.V4).build();
        client.connect(false);
        return client;
    }

    private ResultMessage execute(final String statement) throws Exception {
        final SimpleClient client = connect();
        try {
            return client.execute(statement, ConsistencyLevel.ONE);
        } finally {
            client.close();
        }
    }

    private boolean isBuilt() throws Exception {
        final ResultMessage.Rows rows = (ResultMessage.Rows) execute(
            "SELECT index_name FROM system.\"IndexInfo\" WHERE table_name = 'store'");
        return !rows.result.isEmpty();
    }

    /** As in the paper: five SSTables of different sizes. */
    private void fill(final int count, final int jmx) throws Exception {
        execute(KEYSPACE);
        execute(TABLE);
        try (NodeProbe node = new NodeProbe("127.0.0.1", jmx)) {
            int from = 0;
            for (final int percent : new int[] {8, 20, 40, 65, 100}) {
                final int to = (int) (count * (long) percent / 100);
                write(from, to);
                node.forceKeyspaceFlush("store", "documents");
                from = to;
            }
        }
    }

    private void write(final int from, final int to) throws Exception {
        final ExecutorService writers = Executors.newFixedThreadPool(WRITERS);
        final List<Future<?>> done = new ArrayList<>();
        for (int writer = 0; writer < WRITERS; writer++) {
            final int first = from + writer;
            done.add(writers.submit(() -> {
                final SimpleClient client = connect();
                final ResultMessage.Prepared insert = client.prepare(INSERT);
                for (int i = first; i < to; i += WRITERS) {
                    client.executePrepared(insert, document(i), ConsistencyLevel.ONE);
                }
                client.close();
                return null;
            }));
        }
        writers.shutdown();
        for (final Future<?> writer : done) {
            writer.get();
        }
    }

    /** Reads documents by their ids, in no order. */
    private void read(final int count, final int of) throws Exception {
        final SimpleClient client = connect();
        final ResultMessage.Prepared select = client.prepare("SELECT * FROM store.documents WHERE id = ?");
        final Random random = new Random(1);
        for (int i = 0; i < count; i++) {
            final ResultMessage.Rows rows = (ResultMessage.Rows) client.executePrepared(
                select, List.of(document(random.nextInt(of)).get(0)), ConsistencyLevel.ONE);
            if (rows.result.size() != 1) {
                throw new IllegalStateException("no document " + i);
            }
        }
        client.close();
    }

    private static List<ByteBuffer> document(final int i) {
        final Random random = new Random(i);
        final List<ByteBuffer> values = new ArrayList<>();
        values.add(UUIDType.instance.decompose(new UUID(random.nextLong(), random.nextLong())));
        values.add(Int32Type.instance.decompose(random.nextInt()));
        values.add(TimestampType.instance.decompose(new Date(1_500_000_000_000L + i)));
        values.add(UTF8Type.instance.decompose(text(random, 1700)));
        values.add(UTF8Type.instance.decompose(text(random, 1700)));
        final List<String> tags = new ArrayList<>();
        for (int n = random.nextInt(5); n > 0; n--) {
            tags.add(text(random, 16));
        }
        values.add(ListType.getInstance(UTF8Type.instance, true).decompose(tags));
        return values;
    }

    private static String text(final Random random, final int length) {
        final StringBuilder text = new StringBuilder(length);
        for (int i = 0; i < length; i++) {
            text.append((char) (' ' + random.nextInt(95)));
        }
        return text.toString();
    }
}
