import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.Random;
import java.util.concurrent.Executors;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;

/**
 * t4_Work PORT KIND VALUE: HTTP of the JDK with a pool of threads.
 *   gzip SIZE       each response is a page of SIZE bytes that is compressed at the highest level
 *   accounts MILLIS transfers lock two accounts, one after the other; from MILLIS on also in the other order. /rates needs no lock.
 */
class Work {
    static final Object left = new Object(), right = new Object();
    static volatile long began;

    static void reply(HttpExchange exchange, byte[] body) throws IOException {
        exchange.getRequestBody().readAllBytes();
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    static byte[] deflated(byte[] page) throws IOException {
        var to = new ByteArrayOutputStream();
        try (var stream = new DeflaterOutputStream(to, new Deflater(9))) {
            stream.write(page);
        }
        return to.toByteArray();
    }

    static void transfer(Object one, Object other) throws InterruptedException {
        synchronized (one) {
            Thread.sleep(2);
            synchronized (other) {
                Thread.sleep(1);
            }
        }
    }

    public static void main(String[] words) throws IOException {
        int value = Integer.parseInt(words[2]);
        var server = HttpServer.create(new InetSocketAddress(Integer.parseInt(words[0])), 733);
        if (words[1].equals("gzip")) {
            var random = new Random(5);
            var page = new byte[value];
            for (int nth = 0; nth < value; nth++) page[nth] = (byte) ('a' + random.nextInt(5) * random.nextInt(4));
            server.createContext("/", exchange -> reply(exchange, deflated(page)));
        } else {
            server.createContext("/rates", exchange -> reply(exchange, "ok".getBytes()));
            server.createContext("/transfer", exchange -> {
                if (began == 0) began = System.currentTimeMillis();
                boolean swapped = System.currentTimeMillis() - began > value && Math.random() < 0.5;
                try {
                    if (swapped) transfer(right, left);
                    else transfer(left, right);
                } catch (InterruptedException error) {
                    throw new IOException(error);
                }
                reply(exchange, "done".getBytes());
            });
        }
        server.setExecutor(words[1].equals("gzip") ? Executors.newFixedThreadPool(3) : Executors.newCachedThreadPool());
        server.start();
    }
}
