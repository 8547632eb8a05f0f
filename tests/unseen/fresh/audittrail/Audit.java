import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.*;
import java.util.concurrent.*;

/** Ten workers book payments; each payment is in the audit trail before it is answered. */
public class Audit {
    private final FileChannel trail;

    Audit() throws IOException {
        trail = FileChannel.open(Path.of("trail.log"), StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.APPEND);
    }

    synchronized void append(String line) throws IOException {
        ByteBuffer b = ByteBuffer.wrap(line.getBytes());
        while (b.hasRemaining())
            trail.write(b);
        trail.force(false);
    }

    public static void main(String[] args) throws Exception {
        Audit audit = new Audit();
        ExecutorService workers = Executors.newFixedThreadPool(10);
        for (int w = 0; w < 10; w++) {
            int worker = w;
            workers.submit(() -> {
                for (int n = 0; n < 500; n++)
                    audit.append("worker " + worker + " payment " + n + " of " + (n * 7919 % 900) + "\n");
                return null;
            });
        }
        workers.shutdown();
        workers.awaitTermination(1, TimeUnit.MINUTES);
        System.out.println(Files.lines(Path.of("trail.log")).count() + " payments");
    }
}
