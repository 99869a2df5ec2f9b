import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicLong;
import org.eclipse.jetty.alpn.server.ALPNServerConnectionFactory;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http2.server.HTTP2ServerConnectionFactory;
import org.eclipse.jetty.io.Connection;
import org.eclipse.jetty.io.ssl.SslConnection;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.ssl.SslContextFactory;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/** Jetty with TLS, HTTP/1.1 and HTTP/2. Argument: a key store (PKCS #12, password "secret"). `/counts` responds with what was counted, itself included. */
public class Secured {
    static final AtomicLong connections = new AtomicLong(), requests = new AtomicLong(), http2 = new AtomicLong();

    public static void main(String[] args) throws Exception {
        SslContextFactory.Server ssl = new SslContextFactory.Server();
        ssl.setKeyStorePath(args[0]);
        ssl.setKeyStorePassword("secret");
        HttpConfiguration http = new HttpConfiguration();
        ALPNServerConnectionFactory alpn = new ALPNServerConnectionFactory();
        alpn.setDefaultProtocol("http/1.1");
        Server server = new Server(new QueuedThreadPool(16));
        ServerConnector connector = new ServerConnector(server, 1, 1,
            new SslConnectionFactory(ssl, alpn.getProtocol()), alpn,
            new HTTP2ServerConnectionFactory(http), new HttpConnectionFactory(http));
        connector.setHost("127.0.0.1");
        connector.addBean(new Connection.Listener() {
            @Override
            public void onOpened(Connection connection) {
                if (connection instanceof SslConnection) connections.incrementAndGet();
            }
        });
        server.addConnector(connector);
        server.setHandler(new Handler.Abstract() {
            @Override
            public boolean handle(Request request, Response response, Callback callback) {
                requests.incrementAndGet();
                if (request.getConnectionMetaData().getHttpVersion().getVersion() == 20) http2.incrementAndGet();
                String counts = String.format("{\"connections\":%d,\"requests\":%d,\"http2\":%d}", connections.get(), requests.get(), http2.get());
                String text = request.getHttpURI().getPath().equals("/counts") ? counts : "Hello World!";
                byte[] body = text.getBytes(StandardCharsets.US_ASCII);
                response.getHeaders().put(HttpHeader.CONTENT_LENGTH, body.length);
                response.write(true, ByteBuffer.wrap(body), callback);
                return true;
            }
        });
        server.start();
        System.out.println("listening on 127.0.0.1:" + connector.getLocalPort());
    }
}
