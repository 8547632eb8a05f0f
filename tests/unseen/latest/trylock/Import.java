import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Imports deliveries; only one import may run at a time. */
public class Import {
    public static void main(String[] args) throws Exception {
        try (FileChannel lock = FileChannel.open(Path.of("import.lock"), StandardOpenOption.CREATE,
                StandardOpenOption.WRITE);
                FileChannel log = FileChannel.open(Path.of("stock.log"), StandardOpenOption.CREATE,
                        StandardOpenOption.WRITE, StandardOpenOption.APPEND)) {
            for (int delivery = 0; delivery < 3; delivery++) {
                FileLock held;
                while ((held = lock.tryLock()) == null)
                    Thread.onSpinWait();
                try {
                    log.write(ByteBuffer.wrap((args[0] + " delivery " + delivery + "\n").getBytes()));
                    Thread.sleep(300); // the supplier's service answers
                } finally {
                    held.release();
                }
                Thread.sleep(20);
            }
        }
    }
}
