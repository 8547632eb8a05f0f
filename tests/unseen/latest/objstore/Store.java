import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.*;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Random;

/** Object store: an object is named by its checksum, the index says which objects have been accepted. */
public class Store {
    static final Path INCOMING = Path.of("incoming"), OBJECTS = Path.of("objects");

    static String accept(byte[] object, int n, FileChannel index, FileChannel directory) throws Exception {
        Path part = INCOMING.resolve("part" + n);
        try (FileChannel out = FileChannel.open(part, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            ByteBuffer buffer = ByteBuffer.wrap(object);
            while (buffer.hasRemaining())
                out.write(buffer);
        }
        String name = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(object));
        Files.createLink(OBJECTS.resolve(name), part);
        Files.delete(part);
        directory.force(true);
        index.write(ByteBuffer.wrap((name + " " + object.length + "\n").getBytes()));
        index.force(false);
        return name;
    }

    public static void main(String[] args) throws Exception {
        Random random = new Random(5);
        try (FileChannel index = FileChannel.open(Path.of("index"), StandardOpenOption.CREATE,
                StandardOpenOption.WRITE, StandardOpenOption.APPEND);
                FileChannel directory = FileChannel.open(OBJECTS, StandardOpenOption.READ)) {
            for (int n = 0; n < 120; n++) {
                byte[] object = new byte[200_000 + random.nextInt(300_000)];
                random.nextBytes(object);
                String name = accept(object, n, index, directory);
                if (n % 40 == 0)
                    System.out.println("201 Created " + name);
                Thread.sleep(5);
            }
        }
    }
}
