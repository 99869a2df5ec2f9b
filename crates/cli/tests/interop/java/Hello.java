import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import java.io.FileInputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.util.concurrent.Executors;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;

/** Answers every request, and leaves garbage behind each time. Argument: a key store (PKCS #12, password "secret"), for HTTPS. */
public class Hello {
    static volatile byte[] garbage;

    public static void main(String[] args) throws Exception {
        InetSocketAddress address = new InetSocketAddress("127.0.0.1", 0);
        HttpServer server = args.length > 0 ? secured(address, args[0]) : HttpServer.create(address, 1024);
        byte[] hello = "Hello World!".getBytes(StandardCharsets.US_ASCII);
        server.createContext("/", exchange -> {
            garbage = new byte[64 << 10];
            exchange.sendResponseHeaders(200, hello.length);
            exchange.getResponseBody().write(hello);
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.start();
        System.out.println("listening on 127.0.0.1:" + server.getAddress().getPort());
    }

    static HttpServer secured(InetSocketAddress address, String file) throws Exception {
        char[] password = "secret".toCharArray();
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (FileInputStream in = new FileInputStream(file)) {
            store.load(in, password);
        }
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(store, password);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), null, null);
        HttpsServer server = HttpsServer.create(address, 1024);
        server.setHttpsConfigurator(new HttpsConfigurator(context));
        return server;
    }
}
