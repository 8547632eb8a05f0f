import java.sql.*;

public class Stock {
    public static void main(String[] args) throws Exception {
        try (Connection c = DriverManager.getConnection("jdbc:hsqldb:file:db/stock;shutdown=true", "SA", "")) {
            Statement s = c.createStatement();
            s.execute("set files write delay false");
            s.execute("create cached table booking (id int primary key, article varchar(40), quantity int)");
            c.setAutoCommit(false);
            PreparedStatement p = c.prepareStatement("insert into booking values (?, ?, ?)");
            for (int i = 0; i < 200000; i++) {
                p.setInt(1, i);
                p.setString(2, "article " + i * 7919L % 1000);
                p.setInt(3, i % 12);
                p.addBatch();
                if (i % 1000 == 999) p.executeBatch();
            }
            c.commit();
        }
    }
}
