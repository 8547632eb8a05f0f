import java.io.IOException;
import java.nio.file.*;
import java.util.List;

/** Moves what arrived in the boxes of the tenants to the archive, round after round. */
public class Spool {
    static boolean empty(Path box) throws IOException {
        return Files.list(box).findAny().isEmpty();
    }

    static void archive(Path box) throws IOException {
        try (var files = Files.list(box)) {
            for (Path f : (Iterable<Path>) files::iterator)
                Files.move(f, Path.of("archive", box.getFileName() + "-" + f.getFileName()));
        }
    }

    public static void main(String[] args) throws Exception {
        List<Path> boxes;
        try (var all = Files.list(Path.of("boxes"))) {
            boxes = all.sorted().toList();
        }
        int moved = 0;
        for (int round = 0; round < 12; round++) {
            for (int n = round; n < boxes.size(); n += 25)
                Files.writeString(boxes.get(n).resolve("order" + round), "order " + n);
            for (Path box : boxes)
                if (!empty(box)) {
                    archive(box);
                    moved++;
                }
            Thread.sleep(80);
        }
        System.out.println(moved + " boxes emptied");
    }
}
