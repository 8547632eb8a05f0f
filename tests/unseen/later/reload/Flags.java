import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.*;

/** Feature flags of a server: the file is replaced by the operator, and taken anew when it was. */
public class Flags {
    static final Path FILE = Paths.get("flags.properties");
    private Object key;
    private Properties current;

    Properties get() throws IOException {
        Object now = Files.readAttributes(FILE, BasicFileAttributes.class).fileKey();
        if (!now.equals(key)) {
            Properties p = new Properties();
            try (var in = Files.newBufferedReader(FILE)) {
                p.load(in);
            }
            current = p;
            key = now;
        }
        return current;
    }

    static void replace(int version) throws IOException {
        Path tmp = Paths.get("flags.properties.tmp");
        byte[] text = ("version=" + version + "\n" + "search=on\nbasket=" + (version % 2 == 0) + "\n").getBytes(StandardCharsets.UTF_8);
        try (FileChannel c = FileChannel.open(tmp, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE)) {
            c.write(ByteBuffer.wrap(text));
            c.force(true);
        }
        Files.move(tmp, FILE, StandardCopyOption.ATOMIC_MOVE);
        try (FileChannel d = FileChannel.open(Paths.get("."), StandardOpenOption.READ)) {
            d.force(true);
        }
    }

    public static void main(String[] a) throws Exception {
        replace(0);
        Thread operator = new Thread(() -> {
            try {
                for (int v = 1; v <= 4; v++) {
                    Thread.sleep(250);
                    replace(v);
                }
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        });
        operator.start();
        Flags flags = new Flags();
        Set<String> seen = new TreeSet<>();
        for (int second = 0; second < 28; second++) {
            seen.add(flags.get().getProperty("version"));
            Thread.sleep(50);
        }
        operator.join();
        System.out.println("versions served: " + seen);
    }
}
