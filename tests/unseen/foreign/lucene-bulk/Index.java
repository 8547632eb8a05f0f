import java.nio.file.*;
import java.util.*;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.*;
import org.apache.lucene.index.*;
import org.apache.lucene.store.*;

public class Index {
    public static void main(String[] args) throws Exception {
        Random r = new Random(4);
        try (IndexWriter w = new IndexWriter(FSDirectory.open(Paths.get("index")), new IndexWriterConfig(new StandardAnalyzer()))) {
            for (int n = 0; n < 60000; n++) {
                StringBuilder text = new StringBuilder();
                for (int i = 0; i < 60; i++) text.append("word").append(r.nextInt(5000)).append(' ');
                Document d = new Document();
                d.add(new StringField("id", "" + n, Field.Store.YES));
                d.add(new TextField("text", text.toString(), Field.Store.YES));
                w.addDocument(d);
            }
            w.commit();
        }
    }
}
