// A closed loop of WebSocket messages for k6: the next message follows the echo of the one before.
import ws from "k6/ws";

export const options = { vus: Number(__ENV.CONNECTIONS), duration: __ENV.SECONDS + "s", gracefulStop: "1s" };

export default function () {
  ws.connect(__ENV.URL, {}, (socket) => {
    socket.on("open", () => socket.send("ping"));
    socket.on("message", () => socket.send("ping"));
    socket.setTimeout(() => socket.close(), Number(__ENV.SECONDS) * 1000);
  });
}
