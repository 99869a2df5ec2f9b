import java.io.*;
import java.net.*;
import java.util.*;
import java.util.concurrent.*;

/** ho_Rooms.java PORT MODE N: blocking HTTP/1.1. MODE: pool (N threads, one for each connection as long as it lasts; others wait);
 *  reject (the same, and others are closed); heap (a thread each, N KiB of objects kept for each connection); churn (N KiB of live objects
 *  a connection and 200 KiB of rubbish a request, in a small heap); files (a thread each); waits (threads for requests: N, each 100 ms). */
class ho_Rooms {
    static final byte[] OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".getBytes();
    static final Semaphore PLACES = new Semaphore(0);

    static Object keep(int kib) {
        List<long[]> made = new ArrayList<>();
        for (int index = 0; index < kib; index++) made.add(new long[128]);
        return made;
    }

    static void serve(Socket socket, String mode, int n) {
        Object kept = null;
        try (socket) {
            if (mode.equals("heap") || mode.equals("churn")) kept = keep(n);
            InputStream in = new BufferedInputStream(socket.getInputStream());
            int matched = 0;
            for (int read; (read = in.read()) >= 0; ) {
                matched = read == (matched % 2 == 0 ? '\r' : '\n') ? matched + 1 : 0;
                if (matched < 4) continue;
                matched = 0;
                if (mode.equals("churn")) for (int times = 0; times < 200; times++) keep(1);
                if (mode.equals("waits")) {
                    PLACES.acquire();
                    Thread.sleep(100);
                    PLACES.release();
                }
                socket.getOutputStream().write(OK);
            }
        } catch (OutOfMemoryError error) {
            System.err.println("java.lang.OutOfMemoryError: " + error.getMessage());
        } catch (IOException | InterruptedException error) {
            // The client has gone.
        }
        if (kept != null && kept.hashCode() == 42) System.err.println();
    }

    public static void main(String[] words) throws Exception {
        int port = Integer.parseInt(words[0]), n = Integer.parseInt(words[2]);
        String mode = words[1];
        ExecutorService pool = mode.equals("pool") ? Executors.newFixedThreadPool(n)
            : mode.equals("reject") ? new ThreadPoolExecutor(n, n, 1, TimeUnit.DAYS, new SynchronousQueue<>())
            : Executors.newCachedThreadPool();
        PLACES.release(n);
        try (ServerSocket listener = new ServerSocket(port, 2048, InetAddress.getByName("0.0.0.0"))) {
            while (true) {
                Socket socket;
                try {
                    socket = listener.accept();
                } catch (IOException | OutOfMemoryError error) {
                    System.err.println("accept: " + error);
                    Thread.sleep(20);
                    continue;
                }
                try {
                    pool.execute(() -> serve(socket, mode, n));
                } catch (RejectedExecutionException full) {
                    System.err.println("all threads are busy");
                    socket.close();
                } catch (OutOfMemoryError error) {
                    System.err.println("java.lang.OutOfMemoryError: " + error.getMessage());
                    socket.close();
                }
            }
        }
    }
}
