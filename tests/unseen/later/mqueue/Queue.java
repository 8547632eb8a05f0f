import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;

/** Accepts messages into a spool. What was answered with 250 has to be there after a crash. */
public class Queue {
    static final Path TMP = Paths.get("spool/tmp"), READY = Paths.get("spool/ready");

    static void accept(int no, String body) throws IOException {
        Path tmp = TMP.resolve("m" + no);
        try (FileChannel c = FileChannel.open(tmp, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            ByteBuffer b = ByteBuffer.wrap(body.getBytes(StandardCharsets.UTF_8));
            while (b.hasRemaining()) c.write(b);
            c.force(true);
        }
        Files.move(tmp, READY.resolve("m" + no), StandardCopyOption.ATOMIC_MOVE);
        System.out.println("250 ok queued as m" + no);
        System.out.flush();
    }

    /** At start everything left in tmp is from a delivery that was not answered. */
    static void clean() throws IOException {
        try (DirectoryStream<Path> left = Files.newDirectoryStream(TMP)) {
            for (Path p : left) Files.delete(p);
        }
    }

    public static void main(String[] a) throws Exception {
        Files.createDirectories(TMP);
        Files.createDirectories(READY);
        clean();
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 200; i++) text.append("line ").append(i).append(" of the message\r\n");
        for (int no = 0; no < 120; no++) {
            accept(no, "Message-Id: <" + no + "@example>\r\n\r\n" + text);
            Thread.sleep(3);
        }
    }
}
