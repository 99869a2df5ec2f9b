import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;

/** Heap PORT BYTES: HTTP/1.1 by eight threads; each request keeps BYTES of heap for good. */
public class Heap {
    static final List<byte[]> KEPT = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        int bytes = Integer.parseInt(args[1]);
        HttpServer server = HttpServer.create(new InetSocketAddress(Integer.parseInt(args[0])), 1024);
        server.createContext("/", exchange -> {
            try {
                synchronized (KEPT) {
                    KEPT.add(new byte[bytes]);
                }
                exchange.sendResponseHeaders(200, 2);
                exchange.getResponseBody().write("ok".getBytes());
            } catch (OutOfMemoryError error) {
                System.err.println("java.lang.OutOfMemoryError: Java heap space");
            }
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
    }
}
