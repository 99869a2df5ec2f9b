package throng.play

import org.apache.pekko.stream.scaladsl.Flow

/** What Play 3 has of its own: it streams with Pekko, which is Akka under another name. */
private trait Own {
  def echo: Flow[String, String, _] = Flow[String]
}
