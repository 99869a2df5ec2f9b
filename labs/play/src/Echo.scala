package throng.play

import scala.concurrent.Promise
import scala.concurrent.duration.{Duration, FiniteDuration}

import play.api.{Application, ApplicationLoader, BuiltInComponentsFromContext}
import play.api.mvc.{EssentialFilter, WebSocket}
import play.api.mvc.Results.Ok
import play.api.routing.Router
import play.api.routing.sird._

/** The routes of the text's server and nothing else: no filters, no injection. Play's own main class loads it. */
class Echo extends ApplicationLoader {
  def load(context: ApplicationLoader.Context): Application = new Routes(context).application
}

private class Routes(context: ApplicationLoader.Context) extends BuiltInComponentsFromContext(context) {
  def httpFilters: Seq[EssentialFilter] = Nil

  lazy val router: Router = Router.from {
    case GET(p"/") => defaultActionBuilder(Ok("Hello World!"))
    case GET(p"/longpoll" ? q_o"for=$time") =>
      defaultActionBuilder.async {
        after(time.getOrElse("5s")).future
      }
    case GET(p"/ws/echo") => WebSocket.accept[String, String](_ => Streams.echo)
  }

  /** An answer that comes after `time` ("5s"), with no thread waiting for it. */
  private def after(time: String) = {
    val answer = Promise[play.api.mvc.Result]()
    val delay = Duration(time) match {
      case finite: FiniteDuration => finite
      case _ => Duration(5, "s")
    }
    actorSystem.scheduler.scheduleOnce(delay)(answer.success(Ok("polled")))(executionContext)
    answer
  }
}
