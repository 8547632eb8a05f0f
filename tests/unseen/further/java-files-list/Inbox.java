import java.io.IOException;
import java.nio.file.*;
import java.util.stream.Stream;

/** Looks through the folders of an inbox, again and again. */
public class Inbox {
    static long count(Path folder, boolean close) throws IOException {
        if (close) {
            try (Stream<Path> files = Files.list(folder)) {
                return files.filter(p -> p.toString().endsWith(".xml")).count();
            }
        }
        return Files.list(folder).filter(p -> p.toString().endsWith(".xml")).count();
    }

    public static void main(String[] args) throws Exception {
        long found = 0;
        for (int round = 0; round < 30; round++) {
            for (int n = 0; n < 25; n++)
                found += count(Paths.get("inbox", "client" + n), args.length > 0);
            Thread.sleep(20);
        }
        System.out.println(found + " documents seen");
    }
}
