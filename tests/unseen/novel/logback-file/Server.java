import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

class Server {
    public static void main(String[] arguments) {
        Logger log = LoggerFactory.getLogger(Server.class);
        for (int n = 0; n < 60000; n++) log.info("request {} of user {} took {} ms", n, n % 700, n * 31 % 97);
    }
}
