package throng.play

import akka.stream.scaladsl.Flow

/** What Play 2.6 has of its own: it streams with Akka. */
private trait Own {
  def echo: Flow[String, String, _] = Flow[String]
}
