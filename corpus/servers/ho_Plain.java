import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/** ho_Plain.java PORT THREADS MS: the JDK's own HTTP server. THREADS handlers at once (0: its one dispatcher does all), each MS asleep. */
class ho_Plain {
    public static void main(String[] words) throws Exception {
        int threads = Integer.parseInt(words[1]), sleep = Integer.parseInt(words[2]);
        HttpServer server = HttpServer.create(new InetSocketAddress("0.0.0.0", Integer.parseInt(words[0])), 1024);
        if (threads > 0) server.setExecutor(Executors.newFixedThreadPool(threads));
        server.createContext("/", exchange -> {
            try {
                Thread.sleep(sleep);
            } catch (InterruptedException error) {
                throw new java.io.IOException(error);
            }
            exchange.sendResponseHeaders(200, 2);
            exchange.getResponseBody().write("ok".getBytes());
            exchange.close();
        });
        server.start();
    }
}
