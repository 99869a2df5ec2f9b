import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Executors;

/** Answers at once, but for one full collection that takes a second or more, asked for by a request to `/collect`. */
public class Pauses {
    static final List<Object[]> live = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        grow(Long.parseLong(args[0]));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 1024);
        byte[] hello = "Hello".getBytes(StandardCharsets.US_ASCII);
        server.createContext("/", exchange -> {
            if (exchange.getRequestURI().getPath().equals("/collect")) {
                System.gc();
            }
            exchange.sendResponseHeaders(200, hello.length);
            exchange.getResponseBody().write(hello);
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.start();
        System.out.println("listening on 127.0.0.1:" + server.getAddress().getPort() + " ");
    }

    /** Until a full collection takes this many milliseconds, on any machine. */
    static void grow(long millis) {
        add(1);
        for (long took = shortest(millis); took < millis; took = shortest(millis)) {
            long more = live.size() * (millis - took) / Math.max(took, 1) + 1;
            add(Math.min(more, 3L * live.size()));
        }
    }

    /** Millions of objects, referred to in no order: what a collector has to follow. */
    static void add(long millions) {
        Random random = new Random(1);
        for (long n = 0; n < millions; n++) {
            Object[] list = new Object[1_000_000];
            for (int i = 0; i < list.length; i++) {
                int j = random.nextInt(i + 1);
                list[i] = list[j];
                list[j] = new long[] {i};
            }
            live.add(list);
        }
    }

    /** Of two collections where it seems to be enough: one alone may have waited for a processor, and would take less time later. */
    static long shortest(long enough) {
        long took = collect();
        return took < enough ? took : Math.min(took, collect());
    }

    static long collect() {
        long begin = System.nanoTime();
        System.gc();
        return (System.nanoTime() - begin) / 1_000_000;
    }
}
