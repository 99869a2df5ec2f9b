package throng.play

import akka.stream.scaladsl.Flow

import play.api.BuiltInComponents
import play.api.libs.crypto.CryptoConfig
import play.api.mvc.Action

/** What Play 2.5 has of its own: one object builds actions, and the secret has another name in the configuration, which today's Play warns of. */
private trait Own extends BuiltInComponents {
  override lazy val cryptoConfig: CryptoConfig = CryptoConfig(configuration.underlying.getString("play.http.secret.key"))

  def defaultActionBuilder: Action.type = Action

  def echo: Flow[String, String, _] = Flow[String]
}
