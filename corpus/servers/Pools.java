// Pools PORT KIND VALUE: pools that run dry. What it did is in counts.json.
//   leak PLACES    a pool with PLACES; who asks for an order that was cancelled (each thirty-first) gets a page, and its place is not given back
//   direct BYTES   a thread and a buffer of BYTES outside of the heap for each connection
import com.sun.net.httpserver.HttpServer;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;

public class Pools {
    static final AtomicInteger odd = new AtomicInteger(), responses = new AtomicInteger(), open = new AtomicInteger();

    static void serve(Socket peer, ByteBuffer buffer) {
        try (peer) {
            InputStream in = peer.getInputStream();
            byte[] part = new byte[4096];
            int length;
            while ((length = in.read(part)) > 0) {
                buffer.clear().put(part, 0, length);
                responses.incrementAndGet();
                peer.getOutputStream().write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".getBytes());
            }
        } catch (java.io.IOException gone) {
        }
        open.decrementAndGet();
    }

    public static void main(String[] words) throws Exception {
        int port = Integer.parseInt(words[0]), value = Integer.parseInt(words[2]);
        Thread counter = new Thread(() -> {
            while (true) {
                try {
                    Thread.sleep(200);
                    Files.writeString(Path.of("counts.json"), "{\"odd\": " + odd + ", \"responses\": " + responses + ", \"open\": " + open + "}");
                } catch (Exception why) {
                    System.out.println(why);
                }
            }
        });
        counter.setDaemon(true);
        counter.start();
        if (words[1].equals("direct")) {
            ServerSocket listener = new ServerSocket(port, 700);
            while (true) {
                Socket peer = listener.accept();
                try {
                    ByteBuffer buffer = ByteBuffer.allocateDirect(value);
                    open.incrementAndGet();
                    new Thread(() -> serve(peer, buffer)).start();
                } catch (OutOfMemoryError why) {
                    odd.incrementAndGet();
                    why.printStackTrace();
                    peer.close();
                }
            }
        }
        Semaphore pool = new Semaphore(value);
        HttpServer server = HttpServer.create(new InetSocketAddress(port), 700);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", exchange -> {
            String path = exchange.getRequestURI().getPath();
            int number = Integer.parseInt(path.substring(path.lastIndexOf('/') + 1));
            pool.acquireUninterruptibly();
            try {
                Thread.sleep(3);
            } catch (InterruptedException why) {
            }
            if (number % 31 == 0) {
                odd.incrementAndGet();
            } else {
                pool.release();
            }
            responses.incrementAndGet();
            exchange.sendResponseHeaders(200, 2);
            exchange.getResponseBody().write("ok".getBytes());
            exchange.close();
        });
        server.start();
    }
}
