package throng.play

import org.apache.pekko.stream.scaladsl.Flow

/** Play 3 streams with Pekko, which is Akka under another name. */
private object Streams {
  def echo: Flow[String, String, _] = Flow[String]
}
