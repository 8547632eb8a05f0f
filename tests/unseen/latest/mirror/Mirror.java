import java.nio.channels.FileChannel;
import java.nio.file.*;
import java.util.List;

/** Mirrors the volumes of a directory: all are copied, all are made durable, then they get their names. */
public class Mirror {
    static void copy(Path from, Path to) throws Exception {
        try (FileChannel in = FileChannel.open(from); FileChannel out = FileChannel.open(to,
                StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            long size = in.size();
            for (long at = 0; at < size;)
                at += in.transferTo(at, size - at, out);
        }
    }

    static void force(Path path, StandardOpenOption how) throws Exception {
        try (FileChannel channel = FileChannel.open(path, how)) {
            channel.force(true);
        }
    }

    public static void main(String[] args) throws Exception {
        Path to = Path.of(args[1]);
        List<Path> volumes;
        try (var stream = Files.list(Path.of(args[0]))) {
            volumes = stream.sorted().toList();
        }
        for (Path volume : volumes)
            copy(volume, to.resolve(volume.getFileName() + ".part"));
        for (Path volume : volumes)
            force(to.resolve(volume.getFileName() + ".part"), StandardOpenOption.WRITE);
        for (Path volume : volumes)
            Files.move(to.resolve(volume.getFileName() + ".part"), to.resolve(volume.getFileName()),
                    StandardCopyOption.ATOMIC_MOVE);
        force(to, StandardOpenOption.READ);
        System.out.println(volumes.size() + " volumes");
    }
}
