import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** t3_Apps.java PORT KIND [VALUE...]: the HTTP server of the JDK. `quick`: as it is. `garbage BYTES`: each request makes garbage.
 * `pool THREADS QUEUE MILLIS`: so many threads, so many requests that wait for one, and what each takes; others are rejected. */
class Apps {
    static volatile byte[] last;

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("0.0.0.0", Integer.parseInt(args[0])), 1024);
        byte[] ok = "ok".getBytes(StandardCharsets.US_ASCII);
        int value = args.length > 2 ? Integer.parseInt(args[2]) : 0;
        long pause = args.length > 4 ? Long.parseLong(args[4]) : 0;
        server.createContext("/", exchange -> {
            if (args[1].equals("garbage")) {
                for (int made = 0; made < value; made += 1024) {
                    last = new byte[1024];
                }
            }
            if (pause > 0) {
                try {
                    Thread.sleep(pause);
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }
            exchange.sendResponseHeaders(200, ok.length);
            exchange.getResponseBody().write(ok);
            exchange.close();
        });
        if (args[1].equals("pool")) {
            AtomicLong rejected = new AtomicLong();
            var queue = new ArrayBlockingQueue<Runnable>(Integer.parseInt(args[3]));
            server.setExecutor(new ThreadPoolExecutor(value, value, 1, TimeUnit.MINUTES, queue, (task, pool) -> {
                System.out.println("rejected " + rejected.incrementAndGet());
                throw new java.util.concurrent.RejectedExecutionException("pool of " + value + " threads is full");
            }));
        } else {
            server.setExecutor(Executors.newFixedThreadPool(4));
        }
        server.start();
    }
}
