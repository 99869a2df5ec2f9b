import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A thread that accepts, and one for each connection. `hoard BYTES`: the accept thread keeps so much for each connection, until the
 * heap is full; `throw N`: it dies of an exception at connection N. The process lives on.
 */
public class Accepts {
    static final byte[] HELLO =
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello".getBytes(StandardCharsets.US_ASCII);
    static final List<byte[]> hoard = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        // For all connections of a test: a queue that overflows is a cause of its own.
        ServerSocket listener = new ServerSocket(0, 1200, InetAddress.getByName("127.0.0.1"));
        int n = Integer.parseInt(args[1]);
        Thread acceptor = new Thread(() -> accept(listener, args[0], n), "my-acceptor");
        acceptor.start();
        // What it takes to serve is loaded before there is no room for it.
        try (Socket own = new Socket(listener.getInetAddress(), listener.getLocalPort())) {
            own.getOutputStream().write("GET / HTTP/1.1\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
            own.getInputStream().read();
        }
        System.out.println("listening on 127.0.0.1:" + listener.getLocalPort() + " ");
        // The first thread stays: a process that looks well.
        while (true) {
            Thread.sleep(1000);
        }
    }

    static void accept(ServerSocket listener, String what, int n) {
        int accepted = 0;
        while (true) {
            Socket connection;
            try {
                connection = listener.accept();
            } catch (java.io.IOException e) {
                return;
            }
            accepted++;
            if (what.equals("hoard")) {
                hoard.add(new byte[n]);
            } else if (accepted > n) {
                throw new IllegalStateException("no place for connection " + accepted);
            }
            Thread each = new Thread(() -> serve(connection));
            each.setDaemon(true);
            each.start();
        }
    }

    static void serve(Socket connection) {
        try (Socket own = connection) {
            BufferedReader in = new BufferedReader(
                new InputStreamReader(own.getInputStream(), StandardCharsets.US_ASCII), 512);
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                if (line.isEmpty()) {
                    own.getOutputStream().write(HELLO);
                }
            }
        } catch (java.io.IOException e) {
            // Its peer has gone.
        }
    }
}
