package throng.play

import akka.stream.scaladsl.Flow

/** Play 2.6 streams with Akka. */
private object Streams {
  def echo: Flow[String, String, _] = Flow[String]
}
